# frozen_string_literal: true

require "test_helper"
require "bundler"

# What bin/setup installs: gems of fixed versions, whose bytes are known.
class GemfileLockTest < Minitest::Test
  LOCKS = [File.join(ROOT, "Gemfile.lock"), *Dir[File.join(ROOT, "test/switch/*/Gemfile.lock")]].freeze

  def test_each_gem_has_a_checksum
    LOCKS.each do |lock|
      text = File.read(lock)
      checksums = text[/^CHECKSUMS\n((?:  .*\n)*)/, 1].scan(/^  (.+) sha256=\h{64}$/).flatten
      gems = Bundler::LockfileParser.new(text).specs.reject { |spec| spec.source.is_a?(Bundler::Source::Path) }
                                    .map(&:lock_name)

      assert_operator gems.size, :>, 30
      assert_empty gems - checksums, lock
    end
  end

  def test_all_gems_are_from_the_source_that_the_gemfile_names
    LOCKS.each do |lock|
      source = File.read(lock.delete_suffix(".lock"))[/^source "(.+)"/, 1]

      assert_equal ["#{source}/"], File.read(lock).scan(/^  remote: (?!\.)(.+)$/).flatten.uniq, lock
    end
  end
end
