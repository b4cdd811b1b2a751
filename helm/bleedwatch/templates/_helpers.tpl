{{/* Names, labels, and what all pods have in common. */}}

{{- define "bleedwatch.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bleedwatch.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "bleedwatch.selector" . }}
{{- end -}}

{{- define "bleedwatch.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bleedwatch.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "bleedwatch.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "bleedwatch.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- define "bleedwatch.metricsPort" -}}
{{- dig "metrics" "port" 9464 .Values.config -}}
{{- end -}}

{{/* Pod settings that are the same for all. Call with (dict "root" . "part" .Values.worker). */}}
{{- define "bleedwatch.podSpec" -}}
{{- $root := .root -}}
serviceAccountName: {{ include "bleedwatch.serviceAccount" $root }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .part.terminationGracePeriodSeconds }}
securityContext:
  {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "bleedwatch.container" -}}
{{- $root := .root -}}
image: {{ include "bleedwatch.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml $root.Values.securityContext | nindent 2 }}
resources:
  {{- toYaml .part.resources | nindent 2 }}
env:
  - {name: BLEEDWATCH_CONFIG, value: /etc/bleedwatch/config.yaml}
  - {name: HOME, value: /tmp}
volumeMounts:
  - {name: config, mountPath: /etc/bleedwatch/config.yaml, subPath: config.yaml, readOnly: true}
  - {name: key, mountPath: /etc/bleedwatch/key, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  {{- range $root.Values.secrets }}
  - {name: secret-{{ .name }}, mountPath: /etc/bleedwatch/secrets/{{ .name }}, readOnly: true}
  {{- end }}
{{- end -}}

{{- define "bleedwatch.volumes" -}}
- name: config
  configMap: {name: {{ include "bleedwatch.name" . }}}
- name: key
  secret: {secretName: {{ .Values.keySecret.name }}, defaultMode: 0440, items: [{key: {{ .Values.keySecret.key }}, path: key}]}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 256Mi}
{{- range .Values.secrets }}
- name: secret-{{ .name }}
  secret: {secretName: {{ .secretName }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "bleedwatch.probes" -}}
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 20
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
startupProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 5
  failureThreshold: 60
{{- end -}}
