{{/* The prefix of the names of the release's objects. */}}
{{- define "trainjob.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* The name of the operator's Deployment and its related objects. */}}
{{- define "trainjob.operator" -}}
{{ include "trainjob.fullname" . }}-operator
{{- end }}

{{/* Selector labels of the operator's pods. */}}
{{- define "trainjob.selector" -}}
app.kubernetes.io/name: trainjob-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "trainjob.labels" -}}
{{ include "trainjob.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: trainjob
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* An image's full name. Arguments as a list: the image's values, the chart's context. */}}
{{- define "trainjob.image" -}}
{{- $image := first . -}}
{{- $root := last . -}}
{{ with $root.Values.registry }}{{ . }}/{{ end }}{{ $image.repository }}:{{ default $root.Chart.AppVersion $image.tag }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* Whether training pods may report: true only if the API server supports the policies; else empty. `helm template` asks
no API server and knows no kinds. */}}
{{- define "trainjob.reports" -}}
{{- $known := .Capabilities.APIVersions -}}
{{- $has := or ($known.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") (not ($known.Has "v1/Pod")) -}}
{{- if and .Values.progress.enabled $has }}true{{ end }}
{{- end }}

{{/* The operator's settings file. */}}
{{- define "trainjob.settings" -}}
{{- $image := include "trainjob.image" (list .Values.trainer.image .) -}}
{{ toYaml (merge (dict "image" $image) .Values.settings) }}
{{- end }}

{{/* The operator's permissions in watched namespaces. */}}
{{- define "trainjob.rules" -}}
- apiGroups: [trainjob.dev]
  resources: [trainjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [trainjob.dev]
  resources: [trainjobs/status]
  verbs: [patch]
- apiGroups: [trainjob.dev]
  resources: [trainjobs/finalizers] # for owner references that block the owner's deletion
  verbs: [update]
- apiGroups: [ray.io]
  resources: [rayjobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [list, patch]
{{- with dig "notify" "secretNames" list .Values.settings }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{ toJson . }}
  verbs: [get]
{{- end }}
{{- end }}
