import { z } from 'zod'
import { authSection, PROXY_DEFAULTS } from './auth-section.ts'
import { localReference, metadata } from './metadata.ts'
import { isRecord, needs, withRules, type Rule } from './rules.ts'
import { filePath, httpUrl, scopes, secretRef, size, timerDuration } from './scalars.ts'

const LISTEN_ADDRESS = /^(unix:\/[^\0\s]+|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*|\*):[0-9]{1,5})$/

export const listenAddress = () =>
  z
    .string()
    .max(300)
    .regex(LISTEN_ADDRESS, { error: 'expected host:port, :port or unix:/path' })
    .refine((text) => text.startsWith('unix:') || Number(/[0-9]+$/.exec(text)?.[0]) <= 65_535, {
      error: 'expected a port of at most 65535',
    })

const listen = () =>
  z.strictObject({
    address: listenAddress().default('127.0.0.1:8080'),
    tls: z.strictObject({ certFile: filePath(), keyFile: filePath() }).optional(),
    allowedOrigins: z
      .array(
        z
          .string()
          .max(300)
          .regex(/^(null|[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+)$/, {
            error: 'expected an origin such as "https://app.example.com"',
          }),
      )
      .max(200)
      .default([]),
    allowedHosts: z
      .array(
        z
          .string()
          .min(1)
          .max(300)
          .regex(/^[^\s/?#@\\]+$/, { error: 'expected a host or host:port' }),
      )
      .max(200)
      .default([]),
    headerLimit: size(1024, 1024 * 1024).prefault('16Ki'),
  })

const admin = () =>
  z.strictObject({
    address: listenAddress().default('127.0.0.1:8081'),
    tokenFile: filePath().optional().describe('Bearer token for the guarded endpoints.'),
  })

const timeouts = () =>
  z.strictObject({
    connect: timerDuration().prefault('5s'),
    firstByte: timerDuration().prefault('60s'),
    idle: timerDuration().prefault('0s').describe('0s = none.'),
  })

const targetTls = () =>
  withRules(
    z.strictObject({
      caCertPath: filePath().optional(),
      clientCertFile: filePath().optional(),
      clientKeyFile: filePath().optional(),
      serverName: z.string().min(1).max(253).optional(),
      insecureSkipVerify: z.boolean().default(false),
    }),
    [needs('clientCertFile', 'clientKeyFile'), needs('clientKeyFile', 'clientCertFile')],
  )

const ROUTE_PATH = /^(\/|(\/(?!\.{1,2}(\/|$))[^/?#\\\s%]+)+)$/

/** One route of ProxyConfig. */
export const route = () =>
  z.strictObject({
    name: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/, { error: 'expected letters, digits, "-", "_" and "."' })
      .describe('Unique; in logs and metrics.'),
    path: z
      .string()
      .max(1024)
      .regex(ROUTE_PATH, {
        error: 'expected a path prefix such as "/github" without trailing slash, dot segments, "%", query and fragment',
      })
      .describe('Prefix, at a segment boundary; "/" matches all.'),
    target: httpUrl().describe('URL of the backend; its path and query are sent byte for byte.'),
    externalAuthConfigRef: localReference(),
    resourceUrl: httpUrl().optional().describe('URL of the protected resource; required unless the bind is loopback.'),
    auth: authSection(PROXY_DEFAULTS).optional().describe('Replaces the default for this route.'),
    requiredScopes: scopes().default([]),
    timeouts: timeouts().prefault({}),
    limits: z.strictObject({ bufferedBody: size(0, 1024 * 1024 * 1024).prefault('10Mi') }).prefault({}),
    sseKeepAlive: timerDuration().prefault('0s').describe('Interval of SSE keep-alive comments; 0s = none.'),
    http2: z.boolean().default(false),
    allowUpgrade: z.boolean().default(false),
    targetTls: targetTls().optional(),
    onMatcherError: z.enum(['skip', 'deny']).default('skip'),
    insecureAllowAnonymous: z.boolean().default(false),
  })

/** Names and paths of routes are unique; each repetition is told where it is, beside other problems of the route. */
function eachOnce(routes: unknown, context: z.core.$RefinementCtx): void {
  if (!Array.isArray(routes)) return
  for (const field of ['name', 'path'] as const) {
    const first = new Map<string, number>()
    for (const [index, route] of routes.entries()) {
      const value: unknown = isRecord(route) ? route[field] : undefined
      if (typeof value !== 'string') continue
      const earlier = first.get(value)
      if (earlier === undefined) first.set(value, index)
      else {
        const message = `routes[${earlier}] has the same ${field}, expected each ${field} once`
        context.addIssue({ code: 'custom', message, path: [index, field] })
      }
    }
  }
}

/** A missing section is mode `oauth` without providers (decisions §2.1), unless nothing would use it. */
const authUnlessEveryRouteHasOne: Rule = {
  message: 'missing, so the mode is "oauth" and needs "oauth.resourceUrl" and "oauth.providers"',
  at: 'auth',
  holds: ({ auth, routes }) => {
    if (auth !== undefined) return true
    return (
      Array.isArray(routes) && routes.length > 0 && routes.every((item) => isRecord(item) && item.auth !== undefined)
    )
  },
  json: {
    anyOf: [
      { required: ['auth'] },
      { required: ['routes'], properties: { routes: { minItems: 1, items: { required: ['auth'] } } } },
    ],
  },
}

/** The resource ProxyConfig (decisions §7). */
export const proxyConfig = () =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.literal('ProxyConfig'),
    metadata: metadata(),
    spec: withRules(
      z.strictObject({
        listen: listen().prefault({}),
        admin: admin().prefault({}),
        secretsDirectory: filePath().default('./secrets').describe('Relative to this file.'),
        sessionKeySecretRef: secretRef()
          .optional()
          .describe('Key that binds session ids to callers; made at start when absent.'),
        auth: authSection(PROXY_DEFAULTS)
          .optional()
          .describe('Who may call; the default of all routes. Mode oauth when missing.'),
        routes: z
          .array(route())
          .max(1000)
          .superRefine(eachOnce, { when: () => true })
          .default([]),
      }),
      [authUnlessEveryRouteHasOne],
    ),
  })

export type ProxyConfig = z.output<ReturnType<typeof proxyConfig>>
export type ProxyRoute = ProxyConfig['spec']['routes'][number]
