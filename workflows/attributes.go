package workflows

import "go.temporal.io/sdk/temporal"
import "go.temporal.io/sdk/workflow"

// Search attributes of a run, as the namespace defines them.
var (
	attrRun    = temporal.NewSearchAttributeKeyKeyword("RunName")
	attrRecipe = temporal.NewSearchAttributeKeyKeyword("Recipe")
	attrStage  = temporal.NewSearchAttributeKeyKeyword("Stage")
	attrStep   = temporal.NewSearchAttributeKeyInt64("Step")
	attrReward = temporal.NewSearchAttributeKeyFloat64("Reward")
)

// label makes a workflow findable by its run and stage.
func label(ctx workflow.Context, run, stage string) error {
	return workflow.UpsertTypedSearchAttributes(ctx, attrRun.ValueSet(run), attrStage.ValueSet(stage))
}
