import { asksFor, type Authorization, fieldsBelow, TOOL_FIELDS } from '../../resources/index.ts'
import type { Loaded } from '../documents/loaded.ts'
import type { Located, Problem } from '../documents/problem.ts'
import type { Workload } from '../workloads/workload.ts'

/** Nothing is allowed while it is unknown which tools are: an MCPToolConfig that is missing or invalid is a problem already. */
const NOTHING: Authorization = { default: 'deny', rules: [] }

/**
 * The rules of a manifest's MCPToolConfig; undefined if it restricts no tools. `toolsFilter` is about tools only, so
 * prompts, resources and notifications stay allowed. Methods that are unknown may be calls, and are denied.
 */
export function authorizationOfManifest(
  manifest: Located<Workload>,
  { toolConfigs }: Loaded,
  problems: Problem[],
): Authorization | undefined {
  const { metadata, tools } = manifest.document
  if (tools === undefined) return undefined
  const config = toolConfigs.find(
    ({ document: one }) => one.metadata.name === tools.name && one.metadata.namespace === metadata.namespace,
  )
  if (config === undefined) return NOTHING
  const { spec } = config.document
  for (const [field, { details }] of fieldsBelow(TOOL_FIELDS, '', 'rejected'))
    if (asksFor(spec, field, undefined))
      problems.push(manifest.problem(tools.path, `"${field}" of MCPToolConfig "${tools.name}" ${details}`))
  const { toolsFilter = [] } = spec
  return toolsFilter.length === 0 ? undefined : allowing(toolsFilter)
}

const allowing = (tools: readonly string[]): Authorization => ({
  default: 'deny',
  rules: [
    { name: 'toolsFilter', tools: [...tools], requireScopes: [], effect: 'allow' },
    {
      name: 'not-tools',
      prompts: ['*'],
      resources: ['*'],
      methods: ['notifications/*', 'tasks/list'],
      requireScopes: [],
      effect: 'allow',
    },
  ],
})
