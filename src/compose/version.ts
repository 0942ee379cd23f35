import { readFileSync } from 'node:fs'
import path from 'node:path'
import { PACKAGE_ROOT } from '../core/index.ts'

/** Version of this package, from its package.json. */
export const VERSION: string = (
  JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { version: string }
).version

/** What `extauth version` and `/version` say. */
export const versionLine = (): string => `mcp-extauth ${VERSION} (Node ${process.versions.node})`
