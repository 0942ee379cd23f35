import type { Apply, Credential } from '../core/index.ts'
import { applyAws } from './aws.ts'
import { applyHeader, applyNone } from './header.ts'
import type { Draft } from './applier.ts'
import { applyTo, createSeal, type Appliers, type ApplyOptions } from './seal.ts'

export type { Draft } from './applier.ts'
export type { ApplyOptions } from './seal.ts'
export { type SigningSteps, signingSteps } from './signing-steps.ts'

const APPLIERS = { none: applyNone, header: applyHeader, aws: applyAws } satisfies Appliers

/** The apply stage of one route: headers final, then signed where the credential signs. Synchronous and free of I/O. */
export const createApply = (options: ApplyOptions): Apply => createSeal(options, APPLIERS)

/** Puts a credential on a request that no client sent, such as a check of a backend: the last that happens to the draft. */
export const applyCredential = (draft: Draft, credential: Credential): void => applyTo(draft, credential, APPLIERS)
