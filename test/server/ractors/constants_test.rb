# frozen_string_literal: true

# test: each version

require "test_helper"
require "open3"
require "prism"

# What serves a request may run in a Ractor that is not the main one: there only constants can be read whose values are
# frozen through and through (`.freeze` of an Array of Strings that are made at run time is not enough).
class RactorConstantsTest < Minitest::Test
  SERVING = %w[http net rack concurrency scheduler server/log server/{serving,service,admission,admission_policy}
               server/{drain,line_buffer,request_id,request_timeout,listener,listeners}
               adaptations/isolation
               server/ractors/worker].freeze
  private_constant :SERVING

  # Finds where constants are given values.
  class Finder < Prism::Visitor
    attr_reader :found

    def initialize
      @nesting = []
      @found = []
      super
    end

    def visit_module_node(node) = within(node) { super }

    def visit_class_node(node) = within(node) { super }

    def visit_constant_write_node(node)
      @found << [@nesting.join("::"), node.name]
      super
    end

    private

    def within(node)
      @nesting.push(node.constant_path.slice)
      yield
    ensure
      @nesting.pop
    end
  end

  def constants
    files = Dir[*SERVING.flat_map { |part| ["#{ROOT}/lib/heddle/#{part}.rb", "#{ROOT}/lib/heddle/#{part}/**/*.rb"] }]
    files.flat_map do |file|
      finder = Finder.new
      Prism.parse_file(file).value.accept(finder)
      finder.found
    end
  end

  def test_every_one_of_what_serves_can_be_read_in_a_ractor
    assert_operator constants.size, :>, 50
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{ROOT}/lib", stdin_data: <<~RUBY)
      require "heddle/server"
      Heddle::Server.load_everything
      Heddle::Server::Ractors.prepare
      #{constants.inspect}.each do |space, name|
        value = Object.const_get(space).const_get(name, false)
        puts "\#{space}::\#{name}" unless Ractor.shareable?(value)
      rescue NameError
        nil # of what is only loaded elsewhere
      end
    RUBY

    assert_predicate status, :success?, out
    assert_empty out
  end
end
