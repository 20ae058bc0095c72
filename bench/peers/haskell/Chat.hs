-- | The server of the article on Haskell WebSockets and tsung, written afresh on Debian's @websockets@: every
-- text message goes to everyone, the sender included.
--
-- >  chat PORT +RTS -N2
--
-- Each connection has two green threads and a copy of the channel. The article's second thread outlives its
-- connection; here both end together.
module Main (main) where

import Control.Concurrent (forkIO)
import Control.Concurrent.Async (race_)
import Control.Concurrent.Chan (Chan, dupChan, newChan, readChan, writeChan)
import Control.Exception (SomeException, handle)
import Control.Monad (forever, void)
import Data.ByteString (ByteString)
import Network.Socket
import qualified Network.WebSockets as WS
import System.Environment (getArgs)

main :: IO ()
main = do
  [port] <- getArgs
  listener <- listenOn (read port)
  messages <- newChan
  -- No thread reads the channel itself: without this it would keep all messages.
  void . forkIO . forever $ readChan messages
  forever $ do
    (client, _) <- accept listener
    forkIO . quietly $ serve messages client

-- | The options of all rows: a backlog of 4,096 and no delay, which accepted sockets inherit.
listenOn :: PortNumber -> IO Socket
listenOn port = do
  listener <- socket AF_INET Stream defaultProtocol
  setSocketOption listener ReuseAddr 1
  setSocketOption listener NoDelay 1
  bind listener (SockAddrInet port (tupleToHostAddress (127, 0, 0, 1)))
  listen listener 4096
  pure listener

serve :: Chan ByteString -> Socket -> IO ()
serve messages client = do
  connection <- WS.makePendingConnection client WS.defaultConnectionOptions >>= WS.acceptRequest
  own <- dupChan messages
  race_
    (forever $ readChan own >>= WS.sendTextData connection)
    (forever $ WS.receiveData connection >>= writeChan messages)
  close client

-- | A connection that ends in an exception has ended.
quietly :: IO () -> IO ()
quietly = handle ignore
  where
    ignore :: SomeException -> IO ()
    ignore _ = pure ()
