import path from 'node:path'
import { PACKAGE_ROOT } from '../core/index.ts'

/** The configuration that the lab runs, and the source of the secrets that `init` writes. */
export const LAB_CONFIG = path.join(PACKAGE_ROOT, 'config/lab')
