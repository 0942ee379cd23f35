export type { NewUpstreamSession, UpstreamSessions } from './sessions/session.ts'
export type { UpstreamDeps, UpstreamOutboundOptions } from './upstreams/deps.ts'
export type { Upstream, UpstreamLeg, UpstreamLogin, UpstreamTokenSet } from './upstreams/upstream.ts'
export { createUpstream } from './upstreams/upstreams.ts'
