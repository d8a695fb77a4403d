# frozen_string_literal: true

require "action_mailer"
require "socket"

# A server for mail. It takes the text of a message when eight clients want to send theirs.
class Post
  attr_reader :messages

  def initialize
    @server = TCPServer.new("127.0.0.1", 0)
    @lock = Mutex.new
    @changed = ConditionVariable.new
    @open = 0
    @messages = []
    Thread.new { loop { Thread.new(@server.accept) { |socket| serve(socket) } } }
  end

  def port = @server.addr[1]

  private

  def serve(socket)
    socket.write("220 matrix\r\n")
    while (line = socket.gets)
      socket.write(line.start_with?("DATA") ? take(socket) : "250 fine\r\n")
    end
  end

  def take(socket)
    @lock.synchronize do
      @open += 1
      @changed.broadcast
      @changed.wait(@lock) while @open < CLIENTS
    end
    socket.write("354 go on\r\n")
    message = +""
    message << socket.gets until message.end_with?("\r\n.\r\n")
    @lock.synchronize { @messages << message }
    "250 taken\r\n"
  end
end

post = Post.new
ActionMailer::Base.delivery_method = :smtp
ActionMailer::Base.smtp_settings = { address: "127.0.0.1", port: post.port, enable_starttls: false }
ActionMailer::Base.logger = nil

# One text a task.
class Letters < ActionMailer::Base
  def hello(number) = mail(to: "#{number}@localhost", from: "a@localhost", subject: "hello", body: "text #{number}.")
end

clients { |number| Letters.hello(number).deliver_now }
texts = post.messages.map { |message| [message[/^To: (\d)/, 1], message[/^text (\d)\./, 1]] }.sort
proves("8 mails are sent at once, each to its own address", texts == (0...CLIENTS).map { |n| [n.to_s] * 2 })
