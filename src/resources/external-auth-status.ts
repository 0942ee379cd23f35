import { z } from 'zod'
import { int32 } from '../fields/index.ts'

const CONDITION_TYPE =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/

/** A generation of an object. */
export const generation = () => z.int().meta({ format: 'int64' })

/** Description of `observedGeneration`. */
export const OBSERVED_GENERATION = 'The `metadata.generation` that the status is about; -1 before the first look.'

const condition = () =>
  z.strictObject({
    type: z
      .string()
      .max(316)
      .regex(CONDITION_TYPE, { error: 'expected a CamelCase condition type' })
      .describe('What it is about.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is so.'),
    lastTransitionTime: z.iso.datetime({ offset: true }).describe('When `status` last changed.'),
    reason: z
      .string()
      .min(1)
      .max(1024)
      .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/, { error: 'expected a CamelCase reason' })
      .describe('Why, in one word for programs.'),
    message: z.string().max(32_768).describe('Why, for people.'),
    observedGeneration: generation().min(0).optional().describe('The `metadata.generation` that it is about.'),
  })

/** Conditions of a status, one per type. */
export const conditions = () =>
  z
    .array(condition())
    .max(64)
    .describe('What was found, one per type.')
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })

/** `status` of MCPExternalAuthConfig. `MCPServerEntry` extends the specification (decisions §6). */
export const externalAuthStatus = () =>
  z.strictObject({
    conditions: conditions().optional(),
    configHash: z
      .string()
      .max(64)
      .optional()
      .describe('Of the last valid `spec`; the same that the command line prints and that a proxy shows.'),
    observedGeneration: generation().optional().describe(OBSERVED_GENERATION),
    referenceCount: int32(0, 2_147_483_647)
      .optional()
      .describe('Workloads that refer to it, and pods that have it injected.'),
    referencingWorkloads: z
      .array(
        z.strictObject({
          kind: z.enum(['MCPServer', 'VirtualMCPServer', 'MCPRemoteProxy', 'MCPServerEntry']).describe('Its kind.'),
          name: z.string().min(1).max(253).describe('Its name.'),
        }),
      )
      .max(10_000)
      .optional()
      .describe('Workloads of the namespace that refer to it; while there are any, it is not deleted.')
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['kind', 'name'] }),
  })
export type ExternalAuthStatus = z.output<ReturnType<typeof externalAuthStatus>>
