# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# The paths of health checks that Rails leaves out of its log.
class SilencedPathsTest < Minitest::Test
  include Scheduled

  def paths(path, root)
    out, status = ruby(<<~RUBY)
      require "heddle/rails"
      module Rails
        Config = Data.define(:silence_healthcheck_path, :relative_url_root)
        def self.application = Data.define(:config).new(Config.new(#{path.inspect}, #{root.inspect}))
      end
      puts Heddle::Rails.silenced_paths
    RUBY

    assert_predicate status, :success?, out
    out.lines(chomp: true)
  end

  def test_path_of_rails_counts_also_where_the_application_is_mounted
    assert_equal ["/alive"], paths("/alive", nil)
    assert_equal ["/alive", "/shop/alive"], paths("/alive", "/shop")
    assert_empty paths(nil, "/shop")
  end
end
