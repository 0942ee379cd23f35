export { createElicitation, type ElicitationOptions, isListing } from './elicitation.ts'
