# frozen_string_literal: true

module Heddle
  class Server
    module Options
      # What the server tells.
      LOGGING = [
        Option.new(name: :access_log, unit: :switch, default: true,
                   text: "whether each request is written to the standard output, one line a request")
      ].freeze
    end
  end
end
