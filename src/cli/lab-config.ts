import path from 'node:path'
import { PACKAGE_ROOT } from '../core/index.ts'

/** The folder that the lab runs, and that `init` takes its secrets from. */
export const LAB_CONFIG = path.join(PACKAGE_ROOT, 'config/lab')
