export { LIMITS as MATCHER_LIMITS } from './limits.ts'
export { compileMatcher, compileText, type Matcher, type MatcherResult, type TextExpression } from './matcher.ts'
export { compileRequestMatcher, type RequestMatcher, type RequestVariables } from './request-matcher.ts'
export { remarksOnMatcher, type MatcherRemark } from './remarks.ts'
export { compileWhole } from './patterns.ts'
export { MatcherError, type Position } from './parse.ts'
export {
  compileSelector,
  matchesAny,
  type RequestSelector,
  selects,
  type Selector,
  templatePart,
  variablesOf,
} from './request-selector.ts'
