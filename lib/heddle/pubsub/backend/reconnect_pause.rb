# frozen_string_literal: true

module Heddle
  module PubSub
    class Backend
      # The pauses between attempts to connect. They are random, so that the processes that have lost the same backend
      # don't all reconnect at the same moment.
      module ReconnectPause
        # Upper limits of the first and of the longest pause, in seconds. The lower limit of a pause is half of its
        # upper limit.
        FIRST = 0.05
        LONGEST = 10

        # Makes a pause.
        # @param seconds [Numeric] upper limit of this pause
        # @return [Numeric] upper limit of the next pause
        def self.wait(seconds)
          sleep(seconds * rand(0.5..1.0))
          [seconds * 2, LONGEST].min
        end
      end
    end
  end
end
