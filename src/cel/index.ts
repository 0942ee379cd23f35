export { LIMITS as MATCHER_LIMITS } from './limits.ts'
export { compileMatcher, type Matcher, type MatcherResult } from './matcher.ts'
export { remarksOnMatcher, type MatcherRemark } from './remarks.ts'
export { MatcherError, type Position } from './parse.ts'
