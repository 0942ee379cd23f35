import type { Apply } from '../core/index.ts'
import { applyAws } from './aws.ts'
import { applyHeader, applyNone } from './header.ts'
import { createSeal, type Appliers, type ApplyOptions } from './seal.ts'

export type { ApplyOptions } from './seal.ts'
export { type SigningSteps, signingSteps } from './signing-steps.ts'

const APPLIERS = { none: applyNone, header: applyHeader, aws: applyAws } satisfies Appliers

/** The apply stage of one route: headers final, then signed where the credential signs. Synchronous and free of I/O. */
export const createApply = (options: ApplyOptions): Apply => createSeal(options, APPLIERS)
