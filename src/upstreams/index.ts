export type { UpstreamDeps, UpstreamOutboundOptions } from './deps.ts'
export { probeUpstream, type UpstreamProbe } from './probe.ts'
export type { Upstream, UpstreamLeg, UpstreamLogin, UpstreamTokenSet } from './upstream.ts'
export { createUpstream } from './upstreams.ts'
