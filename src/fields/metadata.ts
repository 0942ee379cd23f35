import { z } from 'zod'
import { later, once } from './later.ts'
import { DNS_SUBDOMAIN, namespaceName, objectName } from './scalars.ts'

/** Namespace of a document that names none (decisions §7). */
export const DEFAULT_NAMESPACE = 'default'

/** Kubernetes' bound for the keys and values of all annotations together. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024

/** A name with an optional domain before it, as keys of labels and finalizers are. */
function isQualified(text: string): boolean {
  const parts = text.split('/')
  const name = parts.pop() ?? ''
  const [prefix] = parts
  const isName = name.length <= 63 && /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/.test(name)
  return isName && parts.length <= 1 && (prefix === undefined || (prefix.length <= 253 && DNS_SUBDOMAIN.test(prefix)))
}

const QUALIFIED = 'letters, digits, "-", "_" and ".", after a domain and "/" or alone'
const expected = (what: string) => ({ error: `expected ${what}` })

const labels = () =>
  z.record(
    z.string().refine(isQualified, expected(QUALIFIED)),
    z
      .string()
      .max(63)
      .regex(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/, expected('letters, digits, "-", "_" and "."')),
  )

const annotations = () =>
  z
    .record(
      z.string().refine((key) => isQualified(key.toLowerCase()), expected(QUALIFIED)),
      z.string(),
    )
    .refine(
      (map) =>
        Object.entries(map).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0) <=
        MAX_ANNOTATIONS_BYTES,
      expected(`at most ${MAX_ANNOTATIONS_BYTES} bytes of annotations`),
    )

const finalizers = () =>
  z
    .array(z.string().refine(isQualified, expected(QUALIFIED)))
    .refine(
      (list) => !(list.includes('orphan') && list.includes('foregroundDeletion')),
      expected('only one of "orphan" and "foregroundDeletion"'),
    )

const ownerReferences = () =>
  z
    .array(
      z.strictObject({
        apiVersion: z.string().min(1),
        kind: z.string().min(1),
        name: z.string().min(1),
        uid: z.string().min(1),
        controller: z.boolean().optional(),
        blockOwnerDeletion: z.boolean().optional(),
      }),
    )
    .refine((list) => list.filter(({ controller }) => controller === true).length <= 1, expected('one controller'))
    .refine(
      (list) => !list.some(({ kind, apiVersion }) => kind === 'Event' && /^(v1|events\.k8s\.io\/v1)$/.test(apiVersion)),
      expected('an owner that is no Event'),
    )

const time = () => z.iso.datetime({ offset: true })

const managedFields = () =>
  z.array(
    z.strictObject({
      manager: z.string().max(128).optional(),
      operation: z.enum(['Apply', 'Update']),
      apiVersion: z.string().optional(),
      time: time().optional(),
      fieldsType: z.enum(['', 'FieldsV1']).optional(),
      fieldsV1: z.unknown().optional(),
      subresource: z.string().max(256).optional(),
    }),
  )

/** `metadata` of an object: what we read, and what a cluster adds when a manifest is exported from it; held to its rules. */
export const metadata = once(() =>
  z
    .strictObject({
      name: objectName(),
      namespace: z
        .union([z.literal('').transform(() => DEFAULT_NAMESPACE), namespaceName()])
        .default(DEFAULT_NAMESPACE),
      labels: later(labels).optional(),
      annotations: later(annotations).optional(),
      creationTimestamp: later(time).optional(),
      deletionGracePeriodSeconds: z.int().optional(),
      deletionTimestamp: later(time).optional(),
      finalizers: later(finalizers).optional(),
      generateName: z
        .string()
        .regex(/^([a-z0-9]([-a-z0-9.]*[-a-z0-9])?)?$/, expected('lower-case letters, digits, "-" and "."'))
        .optional(),
      generation: z.int().min(0).optional(),
      managedFields: later(managedFields).optional(),
      ownerReferences: later(ownerReferences).optional(),
      resourceVersion: z.string().optional(),
      selfLink: z.string().optional(),
      uid: z.string().optional(),
    })
    .transform(({ name, namespace, annotations: { [REVISION_ANNOTATION]: revision } = {} }): Metadata => {
      return { name, namespace, ...(revision === undefined ? {} : { revision }) }
    }),
)

/** Annotation of a ProxyConfig that the operator writes: what it calls this configuration. */
export const REVISION_ANNOTATION = 'extauth.dev/revision'

export interface Metadata {
  readonly name: string
  /** Value of the annotation `extauth.dev/revision`. */
  readonly revision?: string
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
