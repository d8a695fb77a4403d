# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle reload`: new workers with new code, one by one.
    class ReloadCommand < OrderCommand
      NAME = "reload"
    end
  end
end
