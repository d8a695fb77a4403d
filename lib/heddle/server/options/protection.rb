# frozen_string_literal: true

module Heddle
  class Server
    module Options
      # What keeps one request from holding up the others.
      PROTECTION = [
        Option.new(name: :protect, unit: :list, default: [], choices: %i[offload preempt stall_report handoff],
                   none: "off", example: "protect :off",
                   text: "what is done about calls that hold up the loop, or off; only off for now")
      ].freeze
    end
  end
end
