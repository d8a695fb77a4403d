# frozen_string_literal: true

require_relative "board"

use Rack::Static, root: File.join(__dir__, "public"), urls: ["/board.css"]

# With a secret, open pages continue after a reload; without one they load again.
run Heddle::Live.new(Board, secret: ENV.fetch("BOARD_SECRET", nil))
