import { isRecord } from '../../fields/index.ts'
import { cedarToJson } from './convert-policies.ts'
import { CedarError } from './parse-policies.ts'

/** The Cedar policies of a configuration of ToolHive, or why they are not converted. */
export type FoundPolicies =
  { readonly texts: readonly string[]; readonly path: readonly string[] } | { readonly reason: string }

/**
 * The policies of a configuration of ToolHive: `authzConfig` with inline policies, the content of an `authz.json`, the
 * spec of an MCPAuthzConfig, or `authz` of a virtual server. Undefined for anything else.
 */
export function policiesIn(value: unknown): FoundPolicies | undefined {
  if (!isRecord(value)) return undefined
  switch (value.type) {
    case 'inline':
      return policiesOf(value.inline, ['inline'])
    case 'cedarv1':
      return value.cedar === undefined ? policiesOf(value.config, ['config']) : policiesOf(value.cedar, ['cedar'])
    case 'cedar':
      return policiesOf(value, [])
    case 'httpv1':
      return { reason: 'type "httpv1" asks another service' }
    default:
      return undefined
  }
}

function policiesOf(value: unknown, path: readonly string[]): FoundPolicies | undefined {
  if (!isRecord(value) || !Array.isArray(value.policies)) return undefined
  const texts: readonly unknown[] = value.policies
  const entities = value.entitiesJson ?? value.entities_json ?? ''
  const provider = value.primaryUpstreamProvider ?? value.primary_upstream_provider ?? ''
  if (typeof entities !== 'string' || !/^\s*(\[\s*\])?\s*$/.test(entities))
    return { reason: 'entities are not converted; expected "[]"' }
  if (provider !== '')
    return { reason: 'the primary upstream provider makes them read the claims of another token than the caller sends' }
  if (!texts.every((text) => typeof text === 'string')) return { reason: 'a policy is not a string' }
  return { texts, path: [...path, 'policies'] }
}

/** Longer rules are not part of a message. */
const MAX_SHOWN = 2_000

/** The clause of a message: the `authorization` that decides as the policies do, or why none does. */
export function equivalentRules(found: FoundPolicies): string {
  if ('reason' in found) return `they cannot be converted: ${found.reason}`
  try {
    const rules = cedarToJson(found.texts)
    const shown = rules.length > MAX_SHOWN ? 'what "extauth convert cedar" prints' : rules
    return `the equivalent "authorization" of a route is ${shown}`
  } catch (error) {
    if (!(error instanceof CedarError)) throw error
    const { policy, line, column, message } = error
    return `they cannot be converted: policy ${policy + 1}, line ${line}, column ${column}: ${message}`
  }
}
