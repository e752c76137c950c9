-- How Argo CD judges the health of a TrainJob: docs/gitops.md says where it goes.
local status = obj.status or {}
if status.phase == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "the operator has not seen this spec yet"}
end
local holds = {}
for _, condition in ipairs(status.conditions or {}) do
  holds[condition.type] = condition.status == "True"
end
local health = "Progressing"
if holds.Complete then
  health = "Healthy"
elseif holds.Failed or holds.Stalled then
  health = "Degraded"
elseif holds.Suspended then
  health = "Suspended"
end
local words = {status.phase, status.reason}
if status.message ~= nil and status.message ~= "" then
  words[#words + 1] = status.message
end
return {status = health, message = table.concat(words, ": ")}
