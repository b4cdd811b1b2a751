"""What Alembic runs: the missing migrations, in the transaction that it is given."""

from alembic import context

from exporters.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
