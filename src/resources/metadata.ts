import { z } from 'zod'
import { namespaceName, objectName } from './scalars.ts'

/** Namespace of a document that names none (decisions §7). */
export const DEFAULT_NAMESPACE = 'default'

/** `metadata` of an object: what we read, and what a cluster adds when a manifest is exported from it. */
export const metadata = () =>
  z
    .strictObject({
      name: objectName(),
      namespace: namespaceName().default(DEFAULT_NAMESPACE),
      labels: z.record(z.string(), z.string()).optional(),
      annotations: z.record(z.string(), z.string()).optional(),
      creationTimestamp: z.unknown().optional(),
      deletionGracePeriodSeconds: z.unknown().optional(),
      deletionTimestamp: z.unknown().optional(),
      finalizers: z.unknown().optional(),
      generateName: z.unknown().optional(),
      generation: z.unknown().optional(),
      managedFields: z.unknown().optional(),
      ownerReferences: z.unknown().optional(),
      resourceVersion: z.unknown().optional(),
      selfLink: z.unknown().optional(),
      uid: z.unknown().optional(),
    })
    .transform(({ name, namespace }): Metadata => ({ name, namespace }))

export interface Metadata {
  readonly name: string
  /** `default` when the document names none. */
  readonly namespace: string
}

/** Kind that references lead to. */
const EXTERNAL_AUTH_KIND = 'MCPExternalAuthConfig'

/** Reference to the authorization server that callers log in to (authserver.md §2.3). */
export const authServerReference = () =>
  z.strictObject({
    kind: z.literal(EXTERNAL_AUTH_KIND).optional().describe('Kind of the object; there is only one.'),
    name: objectName().describe('Name of an MCPExternalAuthConfig of type embeddedAuthServer in the same namespace.'),
  })

/** Reference to an object of the same namespace. */
export const localReference = () =>
  z.strictObject({ name: objectName().describe('Name of an MCPExternalAuthConfig in the same namespace.') })
