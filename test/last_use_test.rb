# frozen_string_literal: true

# test: once

require "test_helper"

# A C function marked HEDDLE_LAST_USE (net/fate.h) may free a record that it is given. This reads every call of one and
# the code behind it: the caller must not use that record again. A function that passes its own record on to one of them
# must be marked, too; static ones are found without a mark.
class LastUseTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  SOURCES = Dir.glob("ext/heddle/**/*.{c,h}", base: ROOT).sort
  MARKED = /^ *(static )?(?:inline )?HEDDLE_LAST_USE void (?:\(\*)?(\w+)\)?\(([^)]*)\)/
  DEFINED = /^(static )?(?:inline )?(?:HEDDLE_LAST_USE )?void (\w+)\(([^)]*)\)\n(\{\n.*?^\})/m
  # Records that live on: held until the caller lets go, or part of the Ruby object whose method runs.
  HELD = /\bheddle_push_hold\((\w+)\)|(\w+)->working = true|\*(\w+) = \w+_of\(self\)/

  def test_no_caller_uses_a_record_after_its_last_use
    found = SOURCES.flat_map do |file|
      known = shared + inferred(file)
      code(file).scan(/^\{\n.*?^\}/m).flat_map { |body| violations(body, known).map { |text| "#{file}: #{text}" } }
    end

    assert_operator shared.size, :>, 30
    assert_empty found
  end

  def test_functions_that_pass_their_record_on_are_marked
    found = SOURCES.flat_map do |file|
      code(file).scan(DEFINED).filter_map do |local, name, parameters, body|
        "#{file}: #{name}" if !local && !known?(shared, name) && passes_on?(parameters, body, shared + inferred(file))
      end
    end

    assert_empty found
  end

  def test_a_use_after_the_last_one_is_found
    assert_equal 1, found("{\n  finish(record);\n  record->count++;\n}").size
    assert_equal 1, found("{\n  if (a) {\n    finish(record->owner);\n  }\n  look(record->owner);\n}").size
    assert_empty found("{\n  if (a)\n    finish(record);\n  else\n    look(record);\n}")
    assert_empty found("{\n  if (a) {\n    finish(record);\n    return;\n  }\n  look(record);\n}")
    assert_empty found("{\n  look(record);\n  finish(record);\n}")
  end

  private

  def found(body) = violations(body, [["finish", 0]])

  # Without comments and strings.
  def code(file)
    (@code ||= {})[file] ||= File.read("#{ROOT}/#{file}").gsub(%r{/\*.*?\*/}m, "").gsub(/"(?:\\.|[^"\\\n])*"/, '""')
  end

  # Names, each with the position of the record among the arguments.
  def shared
    @shared ||= SOURCES.flat_map do |file|
      code(file).scan(MARKED).reject { |local,| local && file.end_with?(".c") }
                .map { |_, name, parameters| [name, position(parameters)] }
    end
  end

  def inferred(file)
    functions = code(file).scan(DEFINED).select(&:first)
    known = code(file).scan(MARKED).select(&:first).map { |_, name, parameters| [name, position(parameters)] }
    loop do
      more = functions.reject { |_, name,| known?(known, name) }
                      .select { |_, _, parameters, body| passes_on?(parameters, body, shared + known) }
      return known if more.empty?

      known += more.map { |_, name, parameters,| [name, position(parameters)] }
    end
  end

  def known?(list, name) = list.any? { |known, _| known == name }

  def position(parameters) = parameters.start_with?("heddle_sockets *") ? 1 : 0

  def passes_on?(parameters, body, known)
    own = parameters.split(",")[position(parameters)].to_s[/\w+\s*\z/] or return false
    return false if held?(body, own)

    known.any? { |name, at| calls(body, name).any? { |_, arguments| arguments[at] == own } }
  end

  def held?(body, name) = body.scan(HELD).flatten.include?(name)

  def violations(body, known)
    known.flat_map do |name, position|
      calls(body, name).filter_map do |after, arguments|
        record = arguments[position].to_s.delete_prefix("&")
        # The result of a call has no name by which it could be used again.
        next if !record.match?(/\A\w+(?:(?:->|\.)\w+)*\z/) || held?(body, record[/\w+/])

        use = reached(body, after)[/.*(?<![\w.>])#{Regexp.escape(record)}(?!\w).*/] or next
        "after #{name}(#{arguments.join(", ")}): #{use.strip}"
      end
    end
  end

  # [where the code behind the call begins, its arguments]
  def calls(body, name)
    return [] unless body.include?(name)

    body.enum_for(:scan, /(?<!\w)#{name}\(/).map do
      start = Regexp.last_match.end(0)
      stop = matching(body, start - 1, "(", ")")
      [stop, split(body[start...(stop - 1)])]
    end
  end

  def split(text)
    depth = 0
    parts = text.each_char.slice_when do |before, _|
      depth += { "(" => 1, ")" => -1 }.fetch(before, 0)
      before == "," && depth.zero?
    end
    parts.map { |part| part.join.delete_suffix(",").strip }
  end

  # The index behind the bracket that closes the one at `index`.
  def matching(text, index, open, close)
    depth = 0
    index.upto(text.size - 1) do |at|
      depth += { open => 1, close => -1 }.fetch(text[at], 0)
      return at + 1 if depth.zero?
    end
    text.size
  end

  # The code that may run after `index`: up to a jump out of its block, without the other branch of an `if`. Loops are
  # not followed back to their heads.
  def reached(body, index)
    text = +""
    while index < body.size
      case body[index..]
      when /\A\s*else\b/ then index = skip_statement(body, index + Regexp.last_match.end(0))
      when /\A\s*(?:return|goto|continue|break)\b([^;]*);/ then return text << Regexp.last_match(1)
      when /\A[\s;]*\}/, /\A\s*;/ then index += Regexp.last_match.end(0)
      else
        stop = statement_end(body, index)
        text << body[index...stop]
        index = stop
      end
    end
    text
  end

  # Behind the statement that begins at or after `index`: the end of a block, or of what ends with a semicolon.
  def statement_end(body, index)
    at = body.index(/[;{(]/, index)
    at = body.index(/[;{(]/, matching(body, at, "(", ")")) while at && body[at] == "("
    return body.size unless at

    body[at] == "{" ? matching(body, at, "{", "}") : at + 1
  end

  def skip_statement(body, index)
    stop = statement_end(body, index)
    return stop unless body[index..].match?(/\A\s*if\b/) && body[stop..].match?(/\A\s*else\b/)

    skip_statement(body, body.index("else", stop) + "else".size)
  end
end
