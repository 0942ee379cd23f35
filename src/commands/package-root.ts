import { findPackageJSON } from 'node:module'
import path from 'node:path'

/** The folder of this package's package.json: a checkout's top, or where an installed package lies. */
export const PACKAGE_ROOT: string = path.dirname(
  findPackageJSON(import.meta.url) ?? path.join(import.meta.dirname, '../..', 'package.json'),
)
