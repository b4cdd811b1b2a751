"""One plain sentence for each reason that explains an overlap away."""

SENTENCES = {
    "own_prompt": "the receiver had just sent these words itself",
    "common": "tenants besides these two had shown them within the day",
    "own_history": "the receiver's tenant had them before the source request began",
    "same_question": "both asked nearly the same thing, so the answers agree",
    "template": "they belong to the chat template, not to anyone's text",
    "same_account": "both tenants belong to one account, which may share",
    "gateway_cache": "the gateway answered from its own cache, as it is meant to",
    "sibling": "it is a retry of, or sibling to, the same request",
    "allow_list": "they are on an allow-list of public text",
}


def sentence(reason: str) -> str:
    """Why tokens with this reason do not count."""
    return SENTENCES.get(reason, "another reason, unknown to this version, explains them")
