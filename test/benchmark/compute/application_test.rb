# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/compute/application"

class ComputeBenchmarkApplicationTest < Minitest::Test
  # Gives as many records as are asked for.
  class Records
    def query(number, count) = Array.new(count) { { "id" => number, "title" => "<a> & b" } }
  end

  def setup
    @application = Bench::Compute::Application.new(Records)
  end

  def body(path) = @application.call("PATH_INFO" => path).last.join

  def test_a_page_has_as_many_records_as_it_is_long
    { "/page/3" => 3, "/queries/3" => 3 }.each do |path, batches|
      assert_equal batches * Bench::Compute::Application::RECORDS, body(path).scan("<tr>").size, path
    end
  end

  def test_a_page_escapes_what_records_contain
    assert_includes body("/queries/1"), "&lt;a&gt; &amp; b"
  end

  def test_requests_that_wait_or_compute_for_long_answer_with_the_size_of_their_pages
    assert_match(/\A\d+\z/, body("/hog/50"))
    assert_match(%r{\A<!doctype html>\d+</html>\z}, body("/half/4"))
  end

  def test_unknown_paths
    assert_equal 404, @application.call("PATH_INFO" => "/none").first
  end
end
