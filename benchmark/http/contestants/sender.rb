# frozen_string_literal: true

require_relative "../application"
require_relative "../native"

module Bench
  module HTTP
    module Contestants
      # Not a server: a few lines of C that send the large body, to show what the loopback carries.
      class Sender < Contestant
        ROW = "body-12m"

        def key = "sender"

        def label = "bare C sender"

        def role = :baseline

        def version
          Native.program("sender")
          "sends #{Figure.grouped(Application::BODY_12M.bytesize)} bytes, whatever is asked"
        rescue Child::Failed => e
          raise Unavailable, e.message
        end

        def excludes(row_key) = row_key == ROW ? nil : "only sends the large body"

        def command(port, _folder, _ruby_flags)
          [Native.program("sender"), port.to_s, Application::BODY_12M.bytesize.to_s]
        end
      end
    end
  end
end
