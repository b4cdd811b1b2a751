{{/*
A native sidecar (an init container that goes on running) for an engine's pod, for use in charts of
engines: {{ include "bleedwatch.sidecar" (dict "root" . "engine" "engine-0" "format" "sglang" "logs" "/logs/*.log") }}
The pod needs the volumes that `bleedwatch.sidecarVolumes` makes, and a memory volume `engine-logs`
that the engine writes its request log to.
*/}}
{{- define "bleedwatch.sidecar" -}}
- name: bleedwatch
  restartPolicy: Always
  image: {{ include "bleedwatch.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: [run, sidecar, {{ .logs | quote }}, --format, {{ .format }}, --engine, {{ .engine | quote }}, --checkpoint, /state/checkpoint, --own-logs]
  env:
    - {name: BLEEDWATCH_CONFIG, value: /etc/bleedwatch/config.yaml}
  ports:
    - {name: bw-metrics, containerPort: {{ include "bleedwatch.metricsPort" .root }}}
  startupProbe:
    httpGet: {path: /livez, port: bw-metrics}
    failureThreshold: 30
  livenessProbe:
    httpGet: {path: /livez, port: bw-metrics}
    periodSeconds: 20
  resources:
    requests: {cpu: 50m, memory: 128Mi}
    limits: {memory: 256Mi}
  securityContext:
    {{- toYaml .root.Values.securityContext | nindent 4 }}
    runAsNonRoot: true
    runAsUser: {{ .root.Values.podSecurityContext.runAsUser }}
  volumeMounts:
    - {name: bleedwatch-config, mountPath: /etc/bleedwatch/config.yaml, subPath: config.yaml, readOnly: true}
    - {name: bleedwatch-key, mountPath: /etc/bleedwatch/key, readOnly: true}
    - {name: bleedwatch-state, mountPath: /state}
    - {name: engine-logs, mountPath: /logs}
{{- end -}}

{{- define "bleedwatch.sidecarVolumes" -}}
- name: bleedwatch-config
  configMap: {name: {{ include "bleedwatch.name" . }}}
- name: bleedwatch-key
  secret: {secretName: {{ .Values.keySecret.name }}, defaultMode: 0440, items: [{key: {{ .Values.keySecret.key }}, path: key}]}
- name: bleedwatch-state
  emptyDir: {sizeLimit: 1Gi}
- name: engine-logs
  emptyDir: {medium: Memory, sizeLimit: 1Gi}
{{- end -}}
