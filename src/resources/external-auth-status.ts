import { z } from 'zod'

const CONDITION_TYPE =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/

/** A generation of an object. */
export const generation = () => z.int().meta({ format: 'int64' })

const condition = () =>
  z.strictObject({
    type: z.string().max(316).regex(CONDITION_TYPE, { error: 'expected a CamelCase condition type' }),
    status: z.enum(['True', 'False', 'Unknown']),
    lastTransitionTime: z.iso.datetime({ offset: true }),
    reason: z
      .string()
      .min(1)
      .max(1024)
      .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/, { error: 'expected a CamelCase reason' }),
    message: z.string().max(32_768),
    observedGeneration: generation().min(0).optional(),
  })

/** Conditions of a status, one per type. */
export const conditions = () =>
  z
    .array(condition())
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })

/** `status` of MCPExternalAuthConfig. `MCPServerEntry` extends the specification (decisions §6). */
export const externalAuthStatus = () =>
  z.strictObject({
    conditions: conditions().optional(),
    configHash: z.string().max(64).optional(),
    observedGeneration: generation().optional(),
    referencingWorkloads: z
      .array(
        z.strictObject({
          kind: z.enum(['MCPServer', 'VirtualMCPServer', 'MCPRemoteProxy', 'MCPServerEntry']),
          name: z.string().min(1).max(253),
        }),
      )
      .max(10_000)
      .optional()
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['kind', 'name'] }),
  })
export type ExternalAuthStatus = z.output<ReturnType<typeof externalAuthStatus>>
