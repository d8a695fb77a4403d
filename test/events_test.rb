# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle/events"
require "prism"

class EventsTest < Minitest::Test
  Event = Heddle::Events::Event

  def event(template, extra: []) = Event.new(name: :tried, level: :warn, template:, extra:)

  def test_text_has_the_fields_in_their_units
    all = event("{bytes:bytes} {memory:MiB} {duration:ms} {urls} {delay:delay} {workers:worker serves|workers serve}")

    assert_equal "12 kB 2 MiB 250 ms a, b now 1 worker serves",
                 all.text({ bytes: 12_345, memory: 2 << 20, duration: 0.25, urls: %w[a b], delay: 0, workers: 1 })
    assert_equal "20 s, 2.5 s, in 1 s",
                 event("{timeout:seconds}, {drain_delay:seconds}, {delay:delay}")
                   .text({ timeout: 20.0, drain_delay: 2.5, delay: 1.0 })
    assert_equal "in 0.5 s, 2 workers", event("{delay:delay}, {workers:worker}").text({ delay: 0.5, workers: 2 })
  end

  def test_text_leaves_out_optional_parts_whose_field_is_unknown
    one = event("worker {worker}< (pid {pid})> has ended")

    assert_equal "worker 0 has ended", one.text({ worker: 0, pid: nil })
    assert_equal "worker 0 (pid 7) has ended", one.text({ worker: 0, pid: 7 })
  end

  def test_text_takes_values_of_any_encoding_as_they_are
    values = { error: "a\xFF{pid}<x>".b, place: "é".encode("UTF-16LE"), pid: 1 }

    assert_equal 'a\xFF{pid}<x> é', event("{error} {place}", extra: %i[pid]).text(values)
  end

  def test_events_go_to_the_log_of_a_server_and_otherwise_to_stderr
    seen = []
    log = Class.new { define_method(:event) { |*name, **fields| seen << [*name, fields] } }.new
    Heddle::Events.reporting_to(log) { Heddle::Events.report(:hook_failed, hook: :on_booted, error: "no") }

    assert_equal [[:hook_failed, { hook: :on_booted, error: "no" }]], seen
    assert_output(nil, "heddle: the hook on_booted failed: no\n") do
      Heddle::Events.report(:hook_failed, hook: :on_booted, error: "no")
    end
  end

  def test_report_continues_when_stderr_is_closed_or_its_reader_has_ended
    reader, writer = IO.pipe
    reader.close
    before = $stderr
    [writer, File.open(File::NULL, "w").tap(&:close)].each do |io|
      $stderr = io
      assert_nil Heddle::Events.report(:hook_failed, hook: :on_booted, error: "no")
    end
  ensure
    $stderr = before
    writer.close
  end

  # Calls that report an event: the receiver's last name and the method.
  REPORTING = /\A(?:@?log|Events|@?report|@on_event|)\.(?:event|report|call)\z/

  # Collects calls.
  class Calls < Prism::Visitor
    attr_reader :found

    def initialize
      super
      @found = []
    end

    def visit_call_node(node)
      @found << node
      super
    end
  end

  CALLS = Dir["lib/**/*.rb", base: ROOT].to_h do |file|
    calls = Calls.new
    Prism.parse(File.read(File.join(ROOT, file))).value.accept(calls)
    [file, calls.found]
  end.freeze

  def test_every_call_names_an_event_and_its_fields
    seen = []
    wrong = reports.filter_map do |file, call, name|
      event = Heddle::Events::TABLE[name] or next "#{file}: #{name} is unknown"
      seen << name
      given, all = fields_of(call)
      odd = given - event.fields
      missing = all ? Event.fields_in(event.template.gsub(Event::OPTIONAL, "")) - given : []
      "#{file}: #{name}: unknown #{odd}, missing #{missing}" if odd.any? || missing.any?
    end

    assert_empty wrong
    dynamic = %i[reloaded reforked reload_failed refork_failed stall blocking_call callback_switch
                 database_connections database_connections_exceeded exception_dropped thread_kill_refused
                 certificate_expired certificate_expiring memory_budget_exceeded worker_memory_exceeded mold_ended
                 load_failed requests_queued queue_rejected
                 connections_exhausted address_limited slow_readers_cut]

    assert_empty Heddle::Events::TABLE.keys - seen - dynamic - %i[request_rejected log_lines_lost]
  end

  # What an operator reads has a name, a level and fields. Commands print for the person who gave them.
  COMMANDS = %r{\Alib/(?:heddle/cli/|rackup/|heddle/events\.rb|heddle/concurrency/tree_signal\.rb)}

  def test_nothing_else_writes_to_the_log_or_to_stderr
    wrong = CALLS.except(*CALLS.keys.grep(COMMANDS)).flat_map do |file, calls|
      calls.filter_map { |call| "#{file}:#{call.location.start_line}: #{call.slice[0, 60]}" if free_text?(call) }
    end

    assert_empty wrong
  end

  private

  def reports
    CALLS.flat_map do |file, calls|
      calls.filter_map do |call|
        first = call.arguments&.arguments&.first
        next unless first.is_a?(Prism::SymbolNode)
        next unless "#{call.receiver&.slice.to_s[/[@\w]+\z/]}.#{call.name}".match?(REPORTING)

        [file, call, first.unescaped.to_sym]
      end
    end
  end

  # @return [Array(Array<Symbol>, Boolean)] the names, and whether they are all
  def fields_of(call)
    last = call.arguments.arguments.last
    return [[], true] unless last.is_a?(Prism::KeywordHashNode)

    pairs, rest = last.elements.partition { |one| one.is_a?(Prism::AssocNode) }
    [pairs.map { |pair| pair.key.unescaped.to_sym }, rest.empty?]
  end

  def free_text?(call)
    return true if call.name == :warn && call.receiver.nil?
    return false unless %i[write puts print << syswrite].include?(call.name)

    call.receiver&.slice&.match?(/\A(?:\$stderr|STDERR|.*\blog\.errors)\z/)
  end
end
