import type { Loaded, LocatedAuth } from '../../load/index.ts'
import type { ResolvedAuthOf, ResolvedRoute } from '../../resources/index.ts'
import { resolveCloudSts } from './cases.ts'
import type { CaseResult } from './evaluate.ts'

/** A mapping, fallback or rule that no case reached. */
export interface Unreached {
  /** `namespace/name`, or `route NAME` for a rule. */
  readonly config: string
  readonly file: string
  readonly line: number
  /** Position in `roleMappings`, from 1; undefined for `fallbackRoleArn` and for rules. */
  readonly mapping: number | undefined
  readonly rule: string
  readonly roleArn: string
  /** Number of cases that evaluated but did not choose it. */
  readonly evaluated: number
}

/** How a way is called that no mapping gives. */
export const FALLBACK = 'fallbackRoleArn'

type Way = Omit<Unreached, 'evaluated'>

export interface Reach {
  readonly ways: number
  readonly unreached: readonly Unreached[]
}

/** Mappings and fallbacks of all configs of type cloudSts, and rules of routes, that decided for no case. */
export function reachOf(loaded: Loaded, routes: readonly ResolvedRoute[], results: readonly CaseResult[]): Reach {
  const roles = loaded.auths.flatMap((located) => {
    const auth = resolveCloudSts(located)
    return 'message' in auth ? [] : waysOf(auth, located)
  })
  const taken = new Map<string, number>()
  const evaluated = new Map<string, number>()
  const count = (counts: Map<string, number>, key: string) => void counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const { case: each, decision, rules } of results) {
    const route = each.route?.name ?? ''
    for (const { rule, outcome } of rules?.steps ?? [])
      if (outcome !== 'not_evaluated') count(evaluated, ruleKey(route, rule))
    if (rules?.rule !== undefined) count(taken, ruleKey(route, rules.rule))
    if (decision === undefined) continue
    const { config, choice } = decision
    for (const { mapping, outcome } of choice.steps)
      if (outcome !== 'not_evaluated') count(evaluated, keyOf(config, mapping))
    const decider = choice.by === 'mapping' ? choice.steps.find(({ outcome }) => outcome === 'matched') : undefined
    if (choice.by !== undefined) count(taken, keyOf(config, decider?.mapping))
  }
  const all: readonly (readonly [string, Way])[] = [
    ...roles.map((way) => [keyOf(way.config, way.mapping), way] as const),
    ...rulesOf(loaded, routes),
  ]
  return {
    ways: all.length,
    unreached: all
      .filter(([key]) => !taken.has(key))
      .map(([key, way]) => Object.assign({}, way, { evaluated: evaluated.get(key) ?? 0 })),
  }
}

const ruleKey = (route: string, rule: string): string => `route ${route}\n${rule}`

/** The rules of routes, with their locations. */
function rulesOf(loaded: Loaded, routes: readonly ResolvedRoute[]): (readonly [string, Way])[] {
  return routes.flatMap(({ name, authorization }) =>
    (authorization?.rules ?? []).map((rule, index) => {
      const written = loaded.proxies.flatMap((proxy) => {
        const at = proxy.document.spec.routes.findIndex((route) => route.name === name)
        if (at === -1) return []
        const { line } = proxy.problem(['spec', 'routes', at, 'authorization', 'rules', index, 'name'], '')
        return [{ file: proxy.file, line }]
      })
      const { file, line } = written[0] ?? { file: '', line: 0 }
      const what = `rule ${JSON.stringify(rule.name)}`
      const way = { config: `route ${name}`, file, line, mapping: undefined, rule: what, roleArn: rule.effect }
      return [ruleKey(name, rule.name), way] as const
    }),
  )
}

const keyOf = (config: string, mapping: number | undefined): string => `${config} ${mapping ?? 'fallback'}`

function waysOf(auth: ResolvedAuthOf<'cloudSts'>, located: LocatedAuth): Way[] {
  const { spec, source } = auth
  const config = `${auth.namespace}/${auth.name}`
  // The object may have the alias name of its type.
  const lineOf = (...path: readonly PropertyKey[]): number =>
    Math.max(...['cloudSts', 'awsSts'].map((field) => located.problem(['spec', field, ...path], '').line))
  const ways: Way[] = (spec.roleMappings ?? []).map((each, index) => {
    const { claim, matcher, roleArn = each.roleArnTemplate ?? '' } = each
    const rule = matcher === undefined ? `claim ${JSON.stringify(claim)}` : `matcher ${JSON.stringify(matcher)}`
    const line = lineOf('roleMappings', index, matcher === undefined ? 'claim' : 'matcher')
    return { config, file: source.file, line, mapping: index + 1, rule, roleArn }
  })
  const { fallbackRoleArn: roleArn } = spec
  if (roleArn === undefined) return ways
  const line = lineOf('fallbackRoleArn')
  return [...ways, { config, file: source.file, line, mapping: undefined, rule: FALLBACK, roleArn }]
}
