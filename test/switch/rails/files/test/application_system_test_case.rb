# frozen_string_literal: true

require "test_helper"

# A machine that is busy needs more than Capybara's two seconds.
Capybara.default_max_wait_time = 120

class ApplicationSystemTestCase < ActionDispatch::SystemTestCase
  driven_by :selenium, using: :headless_chrome, screen_size: [1400, 1400] do |options|
    %w[--no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking].each do |argument|
      options.add_argument(argument)
    end
  end
end
