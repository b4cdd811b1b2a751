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

{{- define "bleedwatch.apiPort" -}}
{{- dig "api" "port" 8080 .Values.config -}}
{{- end -}}

{{/* Labels and annotations of a pod; it is made anew when the configuration changes. */}}
{{- define "bleedwatch.podMetadata" -}}
labels:
  {{- include "bleedwatch.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
annotations:
  checksum/config: {{ .root.Values.config | toYaml | sha256sum }}
  {{- with .part.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
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

{{/* All of a container but its arguments and ports. `state` and `key` say what it mounts. */}}
{{- define "bleedwatch.container" -}}
{{ include "bleedwatch.process" . }}
livenessProbe:
  httpGet: {path: /livez, port: {{ .probed }}}
  periodSeconds: 20
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: {{ .probed }}}
  periodSeconds: 5
startupProbe:
  httpGet: {path: /livez, port: {{ .probed }}}
  periodSeconds: 5
  failureThreshold: 60
{{- end -}}

{{/* Of it what a container that runs once has as well. */}}
{{- define "bleedwatch.process" -}}
{{- $root := .root -}}
image: {{ include "bleedwatch.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml $root.Values.securityContext | nindent 2 }}
resources:
  {{- toYaml .part.resources | nindent 2 }}
env:
  - {name: BLEEDWATCH_CONFIG, value: /etc/bleedwatch/config/config.yaml}
  - {name: HOME, value: /tmp} # compiled kernels go to its .cache
  {{- if .key }}
  - {name: BLEEDWATCH_KEY_FILE, value: /etc/bleedwatch/key/key}
  {{- end }}
volumeMounts:
  - {name: config, mountPath: /etc/bleedwatch/config, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  {{- if .key }}
  - {name: key, mountPath: /etc/bleedwatch/key, readOnly: true}
  {{- end }}
  {{- if .state }}
  - {name: state, mountPath: /var/lib/bleedwatch}
  {{- end }}
  {{- range concat $root.Values.secrets .part.secrets }}
  - {name: secret-{{ .name }}, mountPath: /etc/bleedwatch/secrets/{{ .name }}, readOnly: true}
  {{- end }}
{{- end -}}

{{- define "bleedwatch.volumes" -}}
{{- $root := .root -}}
- name: config
  configMap: {name: {{ include "bleedwatch.name" $root }}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 256Mi}
{{- if .key }}
- name: key
  secret:
    secretName: {{ $root.Values.keySecret.name }}
    defaultMode: 0440
    items: [{key: {{ $root.Values.keySecret.key }}, path: key}]
{{- end }}
{{- if and .state (not .part.persistence.enabled) }}
- name: state
  emptyDir: {}
{{- end }}
{{- range concat $root.Values.secrets .part.secrets }}
- name: secret-{{ .name }}
  secret: {secretName: {{ .secretName }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "bleedwatch.claims" -}}
{{- with .part.persistence }}
{{- if .enabled }}
volumeClaimTemplates:
  - apiVersion: v1
    kind: PersistentVolumeClaim
    metadata:
      name: state
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .storageClass }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests: {storage: {{ .size }}}
{{- end }}
{{- end }}
{{- end -}}
