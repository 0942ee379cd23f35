import { z } from 'zod'
import { audit } from './audit.ts'
import { authorization, credentials } from './authorization.ts'
import { authSection, PROXY_DEFAULTS } from './auth-section.ts'
import { connections } from './connections.ts'
import { storage } from './embedded-storage.ts'
import { headerForward } from './workloads/header-forward.ts'
import {
  later,
  authServerReference,
  localReference,
  metadata,
  HOST_HEADER,
  LISTEN_ADDRESS,
  ROUTE_PATH,
  isRecord,
  needs,
  withRules,
  filePath,
  httpUrl,
  origins,
  passableHeader,
  scopes,
  secretRef,
  segmentName,
  size,
  timerDuration,
  trustedProxies,
} from '../fields/index.ts'

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
    address: listenAddress()
      .default('127.0.0.1:8080')
      .describe('`host:port`, `:port` for all addresses, or `unix:/path`. A change needs a restart.'),
    tls: z
      .strictObject({
        certFile: filePath('certificate chain').describe(
          'Certificate and its chain, PEM; reloaded when the file changes.',
        ),
        keyFile: filePath('key of certificate').describe('Private key of the certificate, PEM.'),
      })
      .optional()
      .describe('Serves https instead of http.'),
    allowedOrigins: origins()
      .default([])
      .describe(
        'Origins of web pages that may call, such as `https://app.example.com`. On a loopback bind pages of this machine may call, too.',
      ),
    allowedHosts: z
      .array(z.string().min(1).max(300).regex(HOST_HEADER, { error: 'expected a host or host:port' }))
      .max(200)
      .default([])
      .describe(
        'Values of the `Host` header that are served, with or without port. Empty: any; on a loopback bind only names of this machine.',
      ),
    headerLimit: size(1024, 1024 * 1024)
      .prefault('16Ki')
      .describe('Largest request header section; more is answered with 431.'),
    connectionLimit: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe('Most client connections at once; fewer where the process has too few file descriptors.'),
    bufferedBodiesLimit: size(1024 * 1024, 64 * 1024 ** 3)
      .optional()
      .describe(
        'Memory for request bodies that are kept, of all requests together; one more that must be kept is answered with 503. Without it half of what the memory limit of the container leaves above 256Mi, from 16Mi to 256Mi.',
      ),
    trustedProxies: trustedProxies(),
  })

/** How much the inspector captures. */
export const INSPECTOR_MODES = ['off', 'heads', 'bodies'] as const
export type InspectorMode = (typeof INSPECTOR_MODES)[number]

const admin = () =>
  z.strictObject({
    address: listenAddress()
      .default('127.0.0.1:8081')
      .describe('Where health, readiness, version and metrics are served. A change needs a restart.'),
    tokenFile: filePath('token')
      .optional()
      .describe(
        'File with the bearer for /config, /cache, /decisions, /reload and /inspect; without it they are served on loopback only.',
      ),
    inspector: z
      .enum(INSPECTOR_MODES)
      .default('off')
      .describe(
        'What the page /inspect shows of requests: nothing, their heads, or their bodies too (the first 64 KiB of each). A change needs a restart.',
      ),
  })

/** Timeouts of a backend. */
export const timeouts = () =>
  z.strictObject({
    connect: timerDuration().prefault('5s').describe('For a connection to the backend, TLS included; 0s = none.'),
    firstByte: timerDuration()
      .prefault('60s')
      .describe('From the end of the request to the first byte of the answer; 504 then. 0s = none.'),
    idle: timerDuration().prefault('0s').describe('Longest silence within an answer; 0s = none.'),
  })

/** Size limits of requests. */
export const limits = () =>
  z.strictObject({
    bufferedBody: size(0, 1024 * 1024 * 1024)
      .prefault('10Mi')
      .describe('Largest request body of a type that signs it (cloudSts); more is answered with 413.'),
    evaluatedBody: size(0, 1024 * 1024 * 1024)
      .prefault('1Mi')
      .describe(
        'Largest request body on routes with `authorization`, where bodies are read; more is answered with 413. `bufferedBody` where that is less.',
      ),
  })

const targetTls = () =>
  withRules(
    z.strictObject({
      caCertPath: filePath('certificates')
        .optional()
        .describe('CA certificates that replace the system roots for this backend.'),
      clientCertFile: filePath('certificate chain')
        .optional()
        .describe('Certificate that the proxy shows to the backend (mutual TLS).'),
      clientKeyFile: filePath('key of certificate').optional().describe('Private key of that certificate.'),
      serverName: z
        .string()
        .min(1)
        .max(253)
        .optional()
        .describe('Name that the certificate of the backend must have; the host of the target when absent.'),
      insecureSkipVerify: z.boolean().default(false).describe('Takes any certificate; for trying things out only.'),
    }),
    [needs('clientCertFile', 'clientKeyFile'), needs('clientKeyFile', 'clientCertFile')],
  )

export const allowBoundTokens = () =>
  z
    .boolean()
    .describe(
      'Accepts tokens that are bound to a key of the client (cnf: DPoP, mutual TLS), whose binding is not checked; 401 otherwise.',
    )

/** A route of ProxyConfig. */
export const route = () =>
  z.strictObject({
    name: segmentName().describe('Unique; in logs and metrics.'),
    path: z
      .string()
      .max(1024)
      .regex(ROUTE_PATH, {
        error: 'expected a path prefix such as "/github" without trailing slash, dot segments, "%", query and fragment',
      })
      .describe('Prefix, at a segment boundary; "/" matches all.'),
    target: httpUrl().describe('URL of the backend; its path and query are sent byte for byte.'),
    externalAuthConfigRef: localReference().describe('How the backend wants to be authenticated to.'),
    authServerRef: later(authServerReference)
      .optional()
      .describe('Embedded authorization server for the callers of this route; replaces the default.'),
    resourceUrl: httpUrl().optional().describe('URL of the protected resource; required unless the bind is loopback.'),
    auth: later(() => authSection(PROXY_DEFAULTS))
      .optional()
      .describe('Replaces the default for this route.'),
    requiredScopes: scopes().default([]).describe('Scopes that the token of a caller must have; 403 otherwise.'),
    authorization: later(authorization)
      .optional()
      .describe('Which MCP requests are allowed; every request when absent.'),
    credentials: later(credentials)
      .optional()
      .describe(
        'Another `externalAuthConfigRef` for some requests; the first entry that matches replaces that of the route.',
      ),
    allowBoundTokens: allowBoundTokens().default(false),
    passHeaders: z
      .array(passableHeader())
      .max(64)
      .default([])
      .describe(
        'Headers in which gateways name the caller, such as `Remote-User`, that are let through to this backend as callers send them; tokens never are.',
      ),
    headerForward: later(headerForward)
      .optional()
      .describe('Headers that each request to the backend gets beside its credential; those of callers are dropped.'),
    timeouts: timeouts().prefault({}).describe('Toward the backend.'),
    limits: limits().prefault({}).describe('Bounds of sizes.'),
    sseKeepAlive: timerDuration().prefault('0s').describe('Interval of SSE keep-alive comments; 0s = none.'),
    http2: z.boolean().default(false).describe('Offers HTTP/2 to the backend.'),
    allowUpgrade: z.boolean().default(false).describe('Lets connection upgrades (WebSocket) through; 501 otherwise.'),
    targetTls: later(targetTls).optional().describe('TLS toward the backend, where the defaults do not do.'),
    onMatcherError: z
      .enum(['skip', 'deny'])
      .default('skip')
      .describe('When a CEL matcher cannot be evaluated for a caller: the mapping does not match, or 403.'),
    insecureAllowAnonymous: z
      .boolean()
      .default(false)
      .describe('Lets anonymous callers use a static credential on a bind that is not loopback.'),
  })

/**
 * Names and paths of routes are unique; each duplicate is reported at its location, with other problems of the route.
 */
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

const cache = () =>
  z.strictObject({
    storage: storage()
      .refine(({ type }) => type !== 'memory', {
        error: 'memory is not shared between replicas, expected type "kvstore"',
      })
      .describe('Where credentials are kept for all replicas.'),
    keySecretRefs: z
      .array(secretRef('bytes'))
      .min(1)
      .max(16)
      .describe('Secrets that seal what is kept, at least 32 bytes each; the first seals, all open.'),
  })

/** The resource ProxyConfig (decisions §7). */
export const proxyConfig = () =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.literal('ProxyConfig'),
    metadata: metadata(),
    spec: z.strictObject({
      listen: listen().prefault({}).describe('Where callers connect to.'),
      admin: admin().prefault({}).describe('The admin listener.'),
      secretsDirectory: filePath('secrets directory')
        .default('./secrets')
        .describe('Where secrets are, as `<name>/<key>`. A change needs a restart.'),
      sessionKeySecretRef: secretRef('bytes')
        .optional()
        .describe('Key that binds session ids to callers; made at start when absent.'),
      auth: later(() => authSection(PROXY_DEFAULTS))
        .optional()
        .describe('Who may call; the default of all routes. Mode oauth when missing.'),
      authServerRef: later(authServerReference)
        .optional()
        .describe('Embedded authorization server for the callers of all routes without an `auth` of their own.'),
      cache: later(cache)
        .optional()
        .describe('Fetched credentials that all replicas share; each has its own when absent.'),
      audit: later(audit)
        .optional()
        .describe('The audit trail: who did what with which credential. None is kept when absent.'),
      connections: later(connections)
        .optional()
        .describe('Accounts that callers connect at other services, whose credentials routes send.'),
      limits: z
        .strictObject({
          cachedCredentials: z
            .int()
            .min(100)
            .max(1_000_000)
            .optional()
            .describe(
              'Fetched credentials that are kept; the least recently used go first. A change needs a restart. Default: as many as an eighth of what the memory limit leaves above 256 MiB holds.',
            ),
        })
        .prefault({})
        .describe('Bounds of the whole process.'),
      routes: z
        .array(route())
        .max(10_000)
        .superRefine(eachOnce, { when: () => true })
        .default([])
        .describe('What is served: the longest path that fits a request wins.'),
    }),
  })

export type ProxyConfig = z.output<ReturnType<typeof proxyConfig>>
export type ProxyRoute = ProxyConfig['spec']['routes'][number]
