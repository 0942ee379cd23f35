export type { NewUpstreamSession, UpstreamSessions } from './sessions/session.ts'
export type { Upstream, UpstreamLeg, UpstreamLogin, UpstreamTokenSet } from './upstreams/upstream.ts'
