{{/*
A sidecar for the pod of an engine, for charts of engines that have this one as a dependency:

  {{- include "bleedwatch.sidecar" (dict "root" .Subcharts.bleedwatch "kind" "vllm") | nindent 8 }}

is an item of `initContainers`. `kind` is vllm or sglang; `kvPool` names a pool that engines share,
`url` where the engine tells its metrics, `user` whose id the sidecar gets. The pod's volumes are
`bleedwatch.sidecarVolumes`; the engine's container needs `bleedwatch.engineSettings` and
`bleedwatch.engineMounts`; the pod carries the label bleedwatch-sidecar: "true".
Generated from the text of `bleedwatch sidecar manifest`.
*/}}

{{- define "bleedwatch.sidecar" -}}
- name: bleedwatch
  restartPolicy: Always # a native sidecar: it ends after the engine
  image: {{ include "bleedwatch.image" .root }}
  args:
    - run
    - sidecar
    - /logs/*.log
    - --format={{ .kind }}
    - --engine=$(POD_NAME)
{{- if .kvPool }}
    - --kv-pool={{ .kvPool }}
{{- end }}
    - --checkpoint=/state/checkpoint
    - --own-logs
    - --set=spool.folder=/state/spool
    - '--set=scrape.targets=[{"url": "{{ .url | default (ternary "http://127.0.0.1:30000" "http://127.0.0.1:8000" (eq .kind "sglang")) }}", "engine": "$(POD_NAME)"}]'
    - --set=metrics.host=0.0.0.0
    - --set=metrics.port=9464
  env:
    - {name: BLEEDWATCH_CONFIG, value: /etc/bleedwatch/config/config.yaml}
    - {name: BLEEDWATCH_KEY_FILE, value: /etc/bleedwatch/key/key}
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
  ports:
    - {name: bw-metrics, containerPort: 9464}
  livenessProbe:
    httpGet: {path: /livez, port: bw-metrics}
    periodSeconds: 20
  resources:
    requests: {cpu: 50m, memory: 128Mi}
    limits: {memory: 256Mi}
  securityContext:
    runAsNonRoot: true
    runAsUser: {{ .user | default 10001 }}
    runAsGroup: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: bleedwatch-config, mountPath: /etc/bleedwatch/config, readOnly: true}
    - {name: bleedwatch-key, mountPath: /etc/bleedwatch/key, readOnly: true}
    - {name: bleedwatch-state, mountPath: /state}
    - {name: bleedwatch-logs, mountPath: /logs}
{{- range .root.Values.secrets }}
    - {name: bleedwatch-{{ .name }}, mountPath: /etc/bleedwatch/secrets/{{ .name }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "bleedwatch.sidecarVolumes" -}}
- name: bleedwatch-config
  configMap: {name: {{ include "bleedwatch.name" .root }}}
- name: bleedwatch-key
  secret:
    secretName: {{ .root.Values.keySecret.name }}
    defaultMode: 0440
    optional: true
    items: [{key: {{ .root.Values.keySecret.key }}, path: key}]
- name: bleedwatch-state # twice the spool: a pod that fills it is evicted
  emptyDir: {sizeLimit: 2Gi}
- name: bleedwatch-logs # prompts and answers: never on a disk
  emptyDir: {medium: Memory, sizeLimit: 1Gi}
{{- range .root.Values.secrets }}
- name: bleedwatch-{{ .name }}
  secret: {secretName: {{ .secretName }}, defaultMode: 0440, optional: true}
{{- end }}
{{- end -}}

{{- define "bleedwatch.engineSettings" -}}
{{- if eq .kind "sglang" }}
# Logs that the sidecar may free: its group may write. `args` stays as it is.
command:
  - sh
  - -c
  - >-
    umask 0002; exec python3 -m sglang.launch_server "$@"
    --log-requests --log-requests-level 3 --log-requests-format json --log-requests-target /logs --enable-metrics
  - sglang
env:
  - {name: SGLANG_LOG_REQUEST_HEADERS, value: "x-request-id,x-tenant-id"}
{{- else }}
# Add to its arguments: --enable-log-requests --enable-log-outputs
env:
  - name: VLLM_LOGGING_CONFIG_PATH
    value: /etc/bleedwatch/config/vllm-logging.json
{{- end }}
{{- end -}}

{{- define "bleedwatch.engineMounts" -}}
{{- if eq .kind "sglang" }}
- {name: bleedwatch-logs, mountPath: /logs}
{{- else }}
- {name: bleedwatch-logs, mountPath: /logs}
- {name: bleedwatch-config, mountPath: /etc/bleedwatch/config, readOnly: true}
{{- end }}
{{- end -}}
