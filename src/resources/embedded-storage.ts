import { z } from 'zod'
import { goDuration, objectName, namespaceName, secretRef } from './scalars.ts'
import { exclusive, withRules, type Rule } from './rules.ts'
import type { GoDuration } from './units.ts'

const duration = (fallback: string) => goDuration().default(fallback as GoDuration)

const storeTls = () =>
  z.strictObject({
    caCertSecretRef: secretRef().optional().describe('PEM CA certificate; system roots when absent.'),
    insecureSkipVerify: z.boolean().default(false).describe('Skips certificate verification.'),
  })

const sentinelConfig = () =>
  withRules(
    z.strictObject({
      masterName: z.string().min(1).max(253).describe('Monitored master name.'),
      db: z.int32().min(0).default(0).describe('Database number.'),
      sentinelAddrs: z
        .array(
          z
            .string()
            .max(300)
            .regex(/^(\[[0-9A-Fa-f:.]+\]|[^\s:[\]]+):[0-9]{1,5}$/, { error: 'expected host:port' }),
        )
        .min(1)
        .max(64)
        .optional()
        .describe('host:port list; mutually exclusive with sentinelService.'),
      sentinelService: z
        .strictObject({
          name: objectName().describe('Name of the sentinel service.'),
          namespace: namespaceName()
            .optional()
            .describe('Namespace of the sentinel service; the same one when absent.'),
          port: z.int32().min(1).max(65_535).default(26_379),
        })
        .optional(),
    }),
    [
      exclusive('sentinelAddrs', 'sentinelService'),
      {
        message: 'expected "sentinelAddrs" or "sentinelService"',
        holds: (value) => value.sentinelAddrs !== undefined || value.sentinelService !== undefined,
        cel: 'has(self.sentinelAddrs) || has(self.sentinelService)',
        json: { anyOf: [{ required: ['sentinelAddrs'] }, { required: ['sentinelService'] }] },
      },
    ],
  )

const kvstore = () =>
  z.strictObject({
    aclUserConfig: z.strictObject({
      usernameSecretRef: secretRef().describe('Access-control username.'),
      passwordSecretRef: secretRef().describe('Access-control password.'),
    }),
    sentinelConfig: sentinelConfig(),
    tls: storeTls().optional().describe('TLS toward the master; presence enables it.'),
    sentinelTls: storeTls().optional().describe('TLS toward the sentinels; presence enables it.'),
    dialTimeout: duration('5s').describe('Connection timeout.'),
    readTimeout: duration('3s').describe('Socket read timeout.'),
    writeTimeout: duration('3s').describe('Socket write timeout.'),
  })
export type KvStore = z.output<ReturnType<typeof kvstore>>

/** `storage.type` and its object go together; `redis` is the alias of `kvstore` (decisions §1). */
const goesWith = (name: 'kvstore' | 'redis'): Rule => ({
  message: `"${name}" is required when type is "${name}", and must be absent otherwise`,
  at: name,
  holds: (value) => (value.type === name) === (value[name] !== undefined),
  cel: `(has(self.type) && self.type == '${name}') == has(self.${name})`,
  json: {
    if: { properties: { type: { const: name } }, required: ['type'] },
    then: { required: [name] },
    else: { not: { required: [name] } },
  },
})

/** `embeddedAuthServer.storage`; `redis` is normalised to `kvstore`. */
export const storage = () =>
  withRules(
    z.strictObject({
      type: z.enum(['memory', 'kvstore', 'redis']).default('memory'),
      kvstore: kvstore().optional().describe('Required when type is kvstore.'),
      redis: kvstore()
        .optional()
        .describe('Required when type is redis, the alias of kvstore. Extends the specification.'),
    }),
    [goesWith('kvstore'), goesWith('redis')],
  ).transform(({ type, kvstore, redis }): Storage => {
    const store = kvstore ?? redis
    return type === 'memory' || store === undefined ? { type: 'memory' } : { type: 'kvstore', kvstore: store }
  })

export type Storage = { type: 'memory' } | { type: 'kvstore'; kvstore: KvStore }
