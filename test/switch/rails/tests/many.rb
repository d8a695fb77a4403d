# frozen_string_literal: true

require "test_helper"

# More than Rails' threshold of 50, so that they run in parallel.
class ManyTest < ActiveSupport::TestCase
  60.times do |number|
    test "post #{number}" do
      assert_difference("Post.count") { Post.create!(title: "t#{number}", body: Process.pid.to_s) }
    end
  end
end
