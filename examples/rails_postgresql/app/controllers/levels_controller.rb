# frozen_string_literal: true

# Says by what Rails isolates requests.
class LevelsController < ApplicationController
  def show
    render plain: ActiveSupport::IsolatedExecutionState.isolation_level.to_s
  end
end
