# frozen_string_literal: true

module Heddle
  module PubSub
    class Backend
      # The pauses before the second and all later attempts to connect. They are random: otherwise all processes that
      # have lost the same backend would reconnect at the same moment.
      module ReconnectPause
        # Upper limits of the first pause and of each later one, in seconds. The lower limits are half of them.
        FIRST = 0.05
        LONGEST = 10

        # @param seconds [Numeric] upper limit of this pause
        # @return [Numeric] upper limit of the next one
        def self.wait(seconds)
          sleep(seconds * rand(0.5..1.0))
          [seconds * 2, LONGEST].min
        end
      end
    end
  end
end
