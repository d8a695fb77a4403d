# frozen_string_literal: true

module Heddle
  class Server
    module Options
      # What keeps one request from holding up the others.
      PROTECTION = [
        Option.new(name: :protect, unit: :list, default: %i[offload], choices: %i[offload],
                   none: "off", example: "protect :off",
                   text: "what is done about calls that would hold up the loop, or off; offload: a native call that " \
                         "releases Ruby's lock waits for its own request only")
      ].freeze
    end
  end
end
