import { z } from 'zod'
import {
  filePath,
  goDuration,
  int32,
  MAX_INT32,
  objectName,
  namespaceName,
  secretRef,
  HOST_PORT,
  exclusive,
  goesWithType,
  withRules,
} from '../fields/index.ts'

import { AUTH_SERVER_FIELDS, refusals, tabledFields } from './manifest-fields/index.ts'

const duration = (fallback: string) => goDuration().prefault(fallback)

const storeTls = () =>
  z.strictObject({
    caCertSecretRef: secretRef('certificates').optional().describe('PEM CA certificate; system roots when absent.'),
    insecureSkipVerify: z.boolean().default(false).describe('Skips certificate verification.'),
  })

const sentinelConfig = () =>
  withRules(
    z.strictObject({
      masterName: z.string().min(1).max(253).describe('Monitored master name.'),
      db: int32(0, MAX_INT32).default(0).describe('Database number.'),
      sentinelAddrs: z
        .array(z.string().max(300).regex(HOST_PORT, { error: 'expected host:port' }))
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
          port: int32(1, 65_535).default(26_379).describe('Port of the sentinels.'),
        })
        .optional()
        .describe('Service of the sentinels; mutually exclusive with sentinelAddrs.'),
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
  withRules(
    z.strictObject({
      aclUserConfig: z
        .strictObject({
          usernameSecretRef: secretRef().optional().describe('Access-control username; the default user when absent.'),
          passwordSecretRef: secretRef().describe('Access-control password.'),
        })
        .describe('User of the store.'),
      addr: z
        .string()
        .max(300)
        .regex(HOST_PORT, { error: 'expected host:port' })
        .optional()
        .describe('host:port of one server; mutually exclusive with sentinelConfig. Extends the specification.'),
      sentinelConfig: sentinelConfig().optional().describe('How the master is found; mutually exclusive with addr.'),
      tls: storeTls().optional().describe('TLS toward the master; presence enables it.'),
      sentinelTls: storeTls().optional().describe('TLS toward the sentinels; presence enables it.'),
      dialTimeout: duration('5s').describe('Connection timeout.'),
      readTimeout: duration('3s').describe('Socket read timeout.'),
      writeTimeout: duration('3s').describe('Socket write timeout.'),
      waitReplicas: int32(0, 16)
        .default(0)
        .describe(
          'Replicas that must have a code, a rotation or a session before it counts. Extends the specification.',
        ),
      ...tabledFields(AUTH_SERVER_FIELDS, 'storage.redis', []),
    }),
    [
      exclusive('addr', 'sentinelConfig'),
      {
        message: 'expected "addr" or "sentinelConfig"',
        holds: (value) => value.addr !== undefined || value.sentinelConfig !== undefined,
        cel: 'has(self.addr) || has(self.sentinelConfig)',
        json: { anyOf: [{ required: ['addr'] }, { required: ['sentinelConfig'] }] },
      },
      exclusive('addr', 'sentinelTls'),
      ...refusals(AUTH_SERVER_FIELDS, 'storage.redis'),
    ],
  )
export type KvStore = z.output<ReturnType<typeof kvstore>>

const STORAGE_TYPES = ['memory', 'kvstore', 'redis'] as const

const stores = () => ({
  kvstore: kvstore().optional().describe('Required when type is kvstore.'),
  redis: kvstore().optional().describe('Required when type is redis, the alias of kvstore. Extends the specification.'),
})

/** `embeddedAuthServer.storage`; `redis` is normalized to `kvstore`. */
export const storage = () =>
  withRules(
    z.strictObject({
      type: z.enum(STORAGE_TYPES).default('memory').describe('Where sessions and tokens are kept.'),
      ...stores(),
    }),
    (['kvstore', 'redis'] as const).map((type) => goesWithType(type, type, STORAGE_TYPES, 'memory')),
  ).transform(({ type, kvstore, redis }): Storage => {
    const store = kvstore ?? redis
    return type === 'memory' || store === undefined ? { type: 'memory' } : { type: 'kvstore', kvstore: store }
  })

const LOCAL_STORAGE_TYPES = [...STORAGE_TYPES, 'file'] as const

/** `storage`, or a directory of a machine with one user. */
export const localStorage = () =>
  withRules(
    z.strictObject({
      type: z.enum(LOCAL_STORAGE_TYPES).default('memory').describe('Where connections are kept.'),
      ...stores(),
      file: z
        .strictObject({
          directory: filePath('own directory').describe('Directory for one process, on a local file system.'),
        })
        .optional()
        .describe('Required when type is file; only with singleUser.'),
    }),
    (['kvstore', 'redis', 'file'] as const).map((type) => goesWithType(type, type, LOCAL_STORAGE_TYPES, 'memory')),
  ).transform(({ type, kvstore, redis, file }): LocalStorage => {
    if (file !== undefined) return { type: 'file', file }
    const store = kvstore ?? redis
    return type === 'memory' || store === undefined ? { type: 'memory' } : { type: 'kvstore', kvstore: store }
  })

export type Storage = { type: 'memory' } | { type: 'kvstore'; kvstore: KvStore }
export type LocalStorage = Storage | { type: 'file'; file: { directory: string } }
