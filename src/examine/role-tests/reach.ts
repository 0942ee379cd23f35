import type { Loaded, LocatedAuth } from '../../load/index.ts'
import type { ResolvedAuthOf } from '../../resources/index.ts'
import { resolveCloudSts } from './cases.ts'
import type { CaseResult } from './judge.ts'

/** A way to a role that no case took. */
export interface Unreached {
  /** `namespace/name`. */
  readonly config: string
  readonly file: string
  readonly line: number
  /** Place in `roleMappings`, from 1; undefined for `fallbackRoleArn`. */
  readonly mapping: number | undefined
  readonly rule: string
  readonly roleArn: string
  /** How many cases it was evaluated for without being the one that decided. */
  readonly evaluated: number
}

export interface Reach {
  readonly ways: number
  readonly unreached: readonly Unreached[]
}

/** Which mappings and fallbacks of all configs of type cloudSts decided for no case. */
export function reachOf(loaded: Loaded, results: readonly CaseResult[]): Reach {
  const all = loaded.auths.flatMap((located) => {
    const auth = resolveCloudSts(located)
    return 'message' in auth ? [] : waysOf(auth, located)
  })
  const taken = new Map<string, number>()
  const evaluated = new Map<string, number>()
  const count = (counts: Map<string, number>, key: string) => void counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const { decision } of results) {
    const { config, choice } = decision
    for (const { mapping, outcome } of choice.steps)
      if (outcome !== 'not_evaluated') count(evaluated, keyOf(config, mapping))
    const decider = choice.by === 'mapping' ? choice.steps.find(({ outcome }) => outcome === 'matched') : undefined
    if (choice.by !== undefined) count(taken, keyOf(config, decider?.mapping))
  }
  return {
    ways: all.length,
    unreached: all
      .filter(({ config, mapping }) => !taken.has(keyOf(config, mapping)))
      .flatMap((way) => [{ ...way, evaluated: evaluated.get(keyOf(way.config, way.mapping)) ?? 0 }]),
  }
}

const keyOf = (config: string, mapping: number | undefined): string => `${config} ${mapping ?? 'fallback'}`

function waysOf(auth: ResolvedAuthOf<'cloudSts'>, located: LocatedAuth): Omit<Unreached, 'evaluated'>[] {
  const { spec, source } = auth
  const config = `${auth.namespace}/${auth.name}`
  // The object may be written under the alias of its type.
  const lineOf = (...path: readonly PropertyKey[]): number =>
    Math.max(...['cloudSts', 'awsSts'].map((field) => located.problem(['spec', field, ...path], '').line))
  const ways: Omit<Unreached, 'evaluated'>[] = (spec.roleMappings ?? []).map((each, index) => {
    const { claim, matcher, roleArn = each.roleArnTemplate ?? '' } = each
    const rule = matcher === undefined ? `claim ${JSON.stringify(claim)}` : `matcher ${JSON.stringify(matcher)}`
    const line = lineOf('roleMappings', index, matcher === undefined ? 'claim' : 'matcher')
    return { config, file: source.file, line, mapping: index + 1, rule, roleArn }
  })
  const { fallbackRoleArn: roleArn } = spec
  if (roleArn === undefined) return ways
  const line = lineOf('fallbackRoleArn')
  return [...ways, { config, file: source.file, line, mapping: undefined, rule: 'fallbackRoleArn', roleArn }]
}
