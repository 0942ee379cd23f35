import { isMetadataHost, metadataIn } from '../../core/index.ts'
import { isRecord, type Rule } from '../../fields/index.ts'

/** Rejects metadata services as targets (kubernetes.md §3): their responses contain credentials of the machine. */
export const noMetadataTarget = (field: 'remoteUrl' | 'remoteURL'): Rule => ({
  message: 'is a link-local address or a metadata service, which is no MCP server',
  at: field,
  holds: ({ [field]: url }) => typeof url !== 'string' || !URL.canParse(url) || !isMetadataHost(new URL(url).hostname),
})

/** A problem of an egress rule, at a path below it. */
interface EgressProblem {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/**
 * Problems of a NetworkPolicy egress rule that permits access to a metadata service (kubernetes.md §3): no peers, which
 * means all destinations, or networks that contain one. The API server validates the rule itself.
 */
export function metadataEgress(rule: Readonly<Record<string, unknown>>): EgressProblem[] {
  const { to } = rule
  if (!Array.isArray(to) || to.length === 0)
    return [{ path: ['to'], message: 'missing, expected peers: an empty list allows all, metadata services included' }]
  return to.flatMap((peer: unknown, index) => {
    const ipBlock = isRecord(peer) ? peer['ipBlock'] : undefined
    if (!isRecord(ipBlock)) return []
    const { cidr, except = [] } = ipBlock
    const path = ['to', index, 'ipBlock', 'cidr']
    const listed = Array.isArray(except) && except.every((one) => typeof one === 'string') ? except : undefined
    const reached = typeof cidr === 'string' && listed !== undefined ? metadataIn(cidr, listed) : undefined
    if (reached === undefined)
      return [{ path, message: 'expected a network such as "10.0.0.0/8", with networks in "except"' }]
    if (reached.length === 0) return []
    const message = `reaches ${reached.join(', ')}, where metadata services are, expected it in "except"`
    return [{ path, message }]
  })
}
