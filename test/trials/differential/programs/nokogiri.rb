# frozen_string_literal: true

# libxml2 keeps handlers of errors in variables of the native thread; callbacks into Ruby run in between.

require "nokogiri"

# What unpacks an archive, and computes meanwhile.
class SlowText
  def initialize(text)
    @text = text.dup
  end

  def read(length)
    Trials::Program.compute(0.012)
    @text.empty? ? nil : @text.slice!(0, [length, 20].min)
  end

  def close = nil
end

# A function of XPath that computes.
class SlowFunction
  def slow(_nodes)
    Trials::Program.compute(0.03)
    true
  end
end

Trials::Program.example("readers over an IO written in Ruby, then a canonicalization with an error") do |out|
  document = Nokogiri::XML("<a:r xmlns:a=\"relative/uri\"><a:b/></a:r>")
  text = "<r>#{"<a>x</a>" * 3}</r>"
  read = -> { Nokogiri::XML::Reader(SlowText.new(text)).map(&:name).size }
  out.puts Trials::Program.together(read, read, read).inspect
  20.times { document.canonicalize }
rescue StandardError => e
  out.puts e.class
end

Trials::Program.example("an unknown function of XPath beside one that computes") do |out|
  search = lambda do
    Nokogiri::XML("<r><a/></r>").xpath("//a[slow(.)][no-such-function()]", SlowFunction.new)
  rescue Nokogiri::XML::XPath::SyntaxError => e
    e.message[/no-such-function/]
  end
  out.puts Trials::Program.together(search, -> { Nokogiri::XML("<r><a/><a/></r>").xpath("//a").size }).inspect
end

# A handler of events that waits, as one does that asks a database.
class WaitingHandler < Nokogiri::XML::SAX::Document
  attr_reader :seen

  def start_element(name, _attributes = [])
    sleep 0.002
    (@seen ||= []) << name
  end

  def error(message)
    (@seen ||= []) << message[/mismatch/]
  end
end

Trials::Program.example("parsers whose handlers wait, each with its own errors") do |out|
  parse = lambda do |text|
    handler = WaitingHandler.new
    Nokogiri::XML::SAX::Parser.new(handler).parse(text)
    handler.seen.compact
  end
  texts = ["<a><b/><c/></a>", "<d><e></f></d>", "<g><h/></g>"]
  out.puts Trials::Program.together(*texts.map { |text| -> { parse.call(text) } }).inspect
end
