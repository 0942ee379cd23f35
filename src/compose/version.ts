import { readProgramFile } from '../core/index.ts'

const ABOUT = JSON.parse(readProgramFile('package.json').toString()) as {
  readonly version: string
  readonly image: string
}

/** Version of this package, from its package.json. */
export const VERSION: string = ABOUT.version

/** Default image of proxies and sidecars: name and version from package.json. */
export const IMAGE = `${ABOUT.image}:${VERSION}`

/** The line that `extauth version` and `/version` print. */
export const versionLine = (): string => `mcp-extauth ${VERSION} (Node ${process.versions.node})`
