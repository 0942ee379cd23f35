/** Something that others wrote, which this repository is held against. */
export interface Peer {
  readonly name: string
  /** Why it can't be had on this machine, and what would help; undefined where it can. */
  missing(): string | undefined | Promise<string | undefined>
  /** Returns whether it agrees with the proxy, after printing its results. Throws if it is available and did not run. */
  run(): Promise<boolean>
}

/**
 * Runs every peer that can be had. Gives the exit code: 1 when one disagrees, and when one that could be had did not run;
 * an unavailable one is reported.
 */
export async function runPeers(peers: readonly Peer[], say: (line: string) => void): Promise<number> {
  const verdicts = { agreed: [] as string[], failed: [] as string[], missing: [] as string[] }
  for (const peer of peers) {
    const why = await peer.missing()
    if (why !== undefined) {
      say(`${peer.name} did not run: it can't be had here (${why})`)
      verdicts.missing.push(peer.name)
      continue
    }
    try {
      const agrees = await peer.run()
      if (!agrees) say(`${peer.name} DISAGREES`)
      verdicts[agrees ? 'agreed' : 'failed'].push(peer.name)
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      say(`${peer.name} FAILED: it could be had and did not run: ${text}`)
      verdicts.failed.push(peer.name)
    }
  }
  const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))
  say(`agree: ${list(verdicts.agreed)}; failed: ${list(verdicts.failed)}; can't be had: ${list(verdicts.missing)}`)
  return verdicts.failed.length === 0 ? 0 : 1
}

/** Those with one of these texts, separated by commas, in their name; all for an empty one. */
export function chosenOf(peers: readonly Peer[], only: string): readonly Peer[] {
  const texts = only.split(',').map((text) => text.trim().toLowerCase())
  return peers.filter(({ name }) => texts.some((text) => name.toLowerCase().includes(text)))
}
